(** Theorem 1(a): the bound 1/sqrt(K - 2) of lambda_1 cannot be raised. A star of overlaps has xi_n < 0 just above it.

    Class 0 is the centre, class 1 is n and touches the centre alone, by e; the leaves 2 .. K - 1 by w each. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
From Formal.scan_and_snap Require Import Decoder Signal Xi.
Open Scope R_scope.

Section Star.
Variables (M K : nat) (e w : R).
Hypotheses (HK : (4 <= K)%nat) (HM : (K <= M)%nat) (Pe : 0 < e) (Pw : 0 < w).

(** Overlap of class a with the centre. *)
Definition arm (a : nat) : R := match a with O => 0 | 1%nat => e | _ => w end.

Let square := e ^ 2 + (INR K - 2) * w ^ 2.
Hypothesis Small : square < 1.

Definition star (l a : nat) : R :=
  match a with
  | O => match l with O => sqrt (1 - (e ^ 2 + (INR K - 2) * w ^ 2)) | _ => if Nat.ltb l K then arm l else 0 end
  | _ => kron l a
  end.

Definition star_inverse (a b : nat) : R :=
  let d := 1 - (e ^ 2 + (INR K - 2) * w ^ 2) in
  match a, b with
  | O, O => / d
  | O, _ => - arm b / d
  | _, O => - arm a / d
  | _, _ => kron a b + arm a * arm b / d
  end.

Lemma Sum_from_two n f : (2 <= n)%nat -> Sum n f = f 0%nat + f 1%nat + Sum (n - 2) (fun i => f (i + 2)%nat).
Proof.
  intro H. replace n with (n - 2 + 2)%nat at 1 by lia. generalize (n - 2)%nat. clear.
  induction n; simpl; [ring|]. rewrite IHn. replace (n + 2)%nat with (S (S n)) by lia. ring.
Qed.

Lemma arms_square n : (2 <= n)%nat -> Sum n (fun l => arm l * arm l) = e ^ 2 + (INR n - 2) * w ^ 2.
Proof.
  intro H. rewrite (Sum_from_two n _ H), (Sum_ext (n - 2) _ (fun _ => w ^ 2)).
  - rewrite Sum_const, minus_INR by exact H. unfold arm. simpl. ring.
  - intros i _. unfold arm. replace (i + 2)%nat with (S (S i)) by lia. ring.
Qed.

Lemma star_gram a b : (a < K)%nat -> (b < K)%nat ->
  gram M star a b = match a, b with O, O => 1 | O, _ => arm b | _, O => arm a | _, _ => kron a b end.
Proof.
  assert (PM : (a < K)%nat -> (a < M)%nat) by lia.
  assert (Centre : forall b, (0 < b < K)%nat -> Sum M (fun l => star l 0 * kron l b) = arm b).
  { intros c [P L]. rewrite (Sum_ext M _ (fun l => kron l c * star l 0)) by (intros; ring).
    rewrite (Sum_kron M c (fun l => star l 0)) by lia. destruct c; [lia|]. simpl star.
    apply Nat.ltb_lt in L. rewrite L. reflexivity. }
  intros La Lb. unfold gram. destruct a, b.
  - assert (D : 0 <= 1 - (e ^ 2 + (INR K - 2) * w ^ 2)) by (fold square; lra).
    rewrite (Others_split M 0 _ ltac:(lia)). change (star 0 0) with (sqrt (1 - (e ^ 2 + (INR K - 2) * w ^ 2))).
    rewrite sqrt_sqrt by exact D.
    assert (R : Others M 0 (fun i => star i 0 * star i 0) = e ^ 2 + (INR K - 2) * w ^ 2).
    { rewrite <- (arms_square K ltac:(lia)). unfold Others.
      replace M with (K + (M - K))%nat by lia. generalize (M - K)%nat. intro m. induction m.
      - rewrite Nat.add_0_r. apply Sum_ext. intros i Li. destruct i; simpl; [ring|].
        apply Nat.ltb_lt in Li. rewrite Li. reflexivity.
      - rewrite Nat.add_succ_r. cbn [Sum]. rewrite IHm. destruct (K + m)%nat eqn:Q; [lia|]. simpl.
        replace (Nat.ltb (S n) K) with false by (symmetry; apply Nat.ltb_ge; lia). ring. }
    rewrite R. ring.
  - apply Centre. lia.
  - rewrite (Sum_ext M _ (fun l => star l 0 * kron l (S a))) by (intros; unfold star; ring). apply Centre. lia.
  - rewrite (Sum_ext M _ (fun l => kron l (S a) * kron l (S b))) by reflexivity.
    rewrite (Sum_kron M (S a) (fun l => kron l (S b))) by lia. reflexivity.
Qed.

Lemma star_is_inverse : inverse_of K star_inverse (gram M star).
Proof.
  intros a b La Lb. assert (D : 1 - (e ^ 2 + (INR K - 2) * w ^ 2) <> 0) by (fold square; lra).
  rewrite (Sum_ext K _ (fun c => match a, c with O, O => 1 | O, _ => arm c | _, O => arm a | _, _ => kron a c end *
    star_inverse c b)) by (intros; now rewrite star_gram).
  rewrite (Others_split K 0 _ ltac:(lia)).
  assert (Dots : forall f, Others K 0 f = Sum K (fun c => (if Nat.eqb c 0 then 0 else f c))) by reflexivity.
  pose proof (arms_square K ltac:(lia)) as Sq.
  destruct a.
  - destruct b.
    + rewrite (Others_ext K 0 _ (fun c => - / (1 - (e ^ 2 + (INR K - 2) * w ^ 2)) * (arm c * arm c))).
      * rewrite Others_scal. pose proof (Others_split K 0 (fun c => arm c * arm c) ltac:(lia)) as O.
        rewrite Sq in O. simpl arm in O. replace (Others K 0 (fun c => arm c * arm c)) with (e ^ 2 + (INR K - 2) * w ^ 2) by lra.
        rewrite kron_same. unfold star_inverse. field. exact D.
      * intros c _ N. destruct c; [lia|]. unfold star_inverse. field. exact D.
    + rewrite (Others_ext K 0 _ (fun c => kron c (S b) * arm c + arm (S b) / (1 - (e ^ 2 + (INR K - 2) * w ^ 2)) * (arm c * arm c))).
      * rewrite Others_plus, Others_scal. pose proof (Others_split K 0 (fun c => arm c * arm c) ltac:(lia)) as O.
        rewrite Sq in O. simpl arm in O. replace (Others K 0 (fun c => arm c * arm c)) with (e ^ 2 + (INR K - 2) * w ^ 2) by lra.
        pose proof (Others_split K 0 (fun c => kron c (S b) * arm c) ltac:(lia)) as O2.
        rewrite (Sum_kron K (S b) arm Lb) in O2. change (arm 0) with 0 in O2. rewrite Rmult_0_r in O2.
        replace (Others K 0 (fun c => kron c (S b) * arm c)) with (arm (S b)) by lra.
        rewrite (kron_other 0 (S b)) by lia. unfold star_inverse. field. exact D.
      * intros c _ N. destruct c; [lia|]. unfold star_inverse. field. exact D.
  - destruct b.
    + rewrite (Others_ext K 0 _ (fun c => kron c (S a) * (- arm c / (1 - (e ^ 2 + (INR K - 2) * w ^ 2))))).
      * pose proof (Others_split K 0 (fun c => kron c (S a) * (- arm c / (1 - (e ^ 2 + (INR K - 2) * w ^ 2)))) ltac:(lia)) as O.
        rewrite (Sum_kron K (S a) (fun c => - arm c / (1 - (e ^ 2 + (INR K - 2) * w ^ 2))) La) in O.
        rewrite (kron_other 0 (S a)), Rmult_0_l, Rplus_0_l in O by lia. rewrite <- O.
        rewrite (kron_other (S a) 0) by lia. unfold star_inverse. field. exact D.
      * intros c _ N. destruct c; [lia|]. unfold star_inverse. rewrite (kron_sym (S a) (S c)). reflexivity.
    + rewrite (Others_ext K 0 _ (fun c => kron c (S a) * (kron c (S b) + arm c * arm (S b) / (1 - (e ^ 2 + (INR K - 2) * w ^ 2))))).
      * pose proof (Others_split K 0 (fun c => kron c (S a) * (kron c (S b) + arm c * arm (S b) / (1 - (e ^ 2 + (INR K - 2) * w ^ 2)))) ltac:(lia)) as O.
        rewrite (Sum_kron K (S a) (fun c => kron c (S b) + arm c * arm (S b) / (1 - (e ^ 2 + (INR K - 2) * w ^ 2))) La) in O.
        rewrite (kron_other 0 (S a)), Rmult_0_l, Rplus_0_l in O by lia. rewrite <- O. unfold star_inverse. field. exact D.
      * intros c _ N. destruct c; [lia|]. unfold star_inverse. rewrite (kron_sym (S a) (S c)). reflexivity.
Qed.

(** E's action: its norm is the root of the arms' square. *)
Lemma star_norm : at_most K (E M star) (sqrt square).
Proof.
  intro x.
  assert (Ex : forall a, (a < K)%nat -> apply K (E M star) x a =
    match a with O => Sum K (fun b => arm b * x b) | _ => arm a * x 0%nat end).
  { intros a La. unfold apply, E. destruct a.
    - apply Sum_ext. intros b Lb. rewrite star_gram by assumption. destruct b; [rewrite kron_same; simpl; ring|].
      rewrite kron_other by lia. ring.
    - rewrite (Sum_ext K _ (fun b => kron b 0 * (arm (S a) * x 0%nat))).
      + now rewrite (Sum_kron K 0 (fun _ => arm (S a) * x 0%nat)) by lia.
      + intros b Lb. rewrite star_gram by assumption. destruct b.
        * rewrite kron_same, (kron_other (S a) 0) by lia. ring.
        * rewrite (kron_other (S b) 0) by lia. ring. }
  assert (Arms : dot K arm arm = square) by (apply arms_square; lia).
  assert (Ps : 0 <= square) by (rewrite <- Arms; apply dot_nonneg).
  unfold norm. rewrite <- sqrt_mult by (exact Ps || apply dot_nonneg). apply sqrt_le_1_alt.
  unfold dot at 1. rewrite (Others_split K 0 _ ltac:(lia)).
  rewrite (Others_ext K 0 _ (fun a => x 0%nat * x 0%nat * (arm a * arm a))).
  2:{ intros a La N. rewrite Ex by exact La. destruct a; [lia|]. ring. }
  rewrite Others_scal, Ex by lia.
  pose proof (Others_split K 0 (fun a => arm a * arm a) ltac:(lia)) as O. simpl arm in O.
  fold (dot K arm arm) in O. rewrite Arms in O.
  rewrite Rmult_0_l, Rplus_0_l in O. rewrite <- O.
  (* the centre's entry sees the others alone *)
  set (y := fun a => match a with O => 0 | _ => x a end).
  assert (Y : Sum K (fun b => arm b * x b) = dot K arm y).
  { apply Sum_ext. intros b _. destruct b; simpl; ring. }
  assert (Z : dot K x x = x 0%nat * x 0%nat + dot K y y).
  { unfold dot. rewrite (Others_split K 0 (fun i => x i * x i)), (Others_split K 0 (fun i => y i * y i)) by lia.
    rewrite (Others_ext K 0 (fun i => y i * y i) (fun i => x i * x i)).
    - simpl. ring.
    - intros i _ N. destruct i; [lia|reflexivity]. }
  pose proof (cauchy_schwarz K arm y) as C. rewrite Arms in C. rewrite Y, Z. nra.
Qed.

Lemma star_xi gamma : 0 < gamma -> e * (INR M - 1) < (INR K - 2) * w - 1 -> xi M K star star_inverse gamma 1 < 0.
Proof.
  intros Pg Touch. assert (PM : 4 <= INR M) by (pose proof (le_INR 4 M ltac:(lia)) as Q; simpl in Q; lra).
  set (d := 1 - (e ^ 2 + (INR K - 2) * w ^ 2)). assert (D : 0 < d) by (unfold d; fold square; lra).
  unfold xi.
  assert (B : Others K 1 (fun n' => beta M K star_inverse 1 n' * gram M star 1 n') = beta M K star_inverse 1 0 * e).
  { unfold Others. rewrite (Sum_ext K _ (fun c => kron c 0 * (beta M K star_inverse 1 0 * e))).
    - now rewrite (Sum_kron K 0 (fun _ => beta M K star_inverse 1 0 * e)) by lia.
    - intros c Lc. destruct (Nat.eqb_spec c 1) as [->|N]; [rewrite kron_other by lia; ring|].
      rewrite star_gram by lia. destruct c; [rewrite kron_same; simpl; ring|].
      rewrite (kron_other (S c) 0), (kron_other 1 (S c)) by lia. ring. }
  rewrite B.
  assert (Beta : beta M K star_inverse 1 0 = (e * q1 M + q0 M * ((INR K - 2) * w - 1)) / d).
  { unfold beta. rewrite (Sum_from_two K _ ltac:(lia)).
    rewrite (Sum_ext (K - 2) _ (fun _ => - w / d * q0 M)).
    - rewrite Sum_const, minus_INR by lia. replace (INR 2) with 2 by (simpl; ring).
      change (star_inverse 0 0) with (/ d). change (star_inverse 0 1) with (- e / d).
      change (u M 1 0) with (q0 M). change (u M 1 1) with (q1 M). field. lra.
    - intros i _. replace (i + 2)%nat with (S (S i)) by lia. reflexivity. }
  rewrite Beta.
  assert (Neg : e * q1 M + q0 M * ((INR K - 2) * w - 1) < 0).
  { unfold q1, q0.
    replace (e * (INR M / (INR M - 1)) + - INR M / (INR M - 1) ^ 2 * ((INR K - 2) * w - 1))
      with (INR M / (INR M - 1) ^ 2 * (e * (INR M - 1) - ((INR K - 2) * w - 1))) by (field; lra).
    assert (0 < INR M / (INR M - 1) ^ 2) by (apply Rdiv_lt_0_compat; [lra|apply pow_lt; lra]). nra. }
  assert ((e * q1 M + q0 M * ((INR K - 2) * w - 1)) / d < 0).
  { unfold Rdiv. assert (0 < / d) by now apply Rinv_0_lt_compat. nra. }
  assert (0 < gamma * e) by now apply Rmult_lt_0_compat. nra.
Qed.
End Star.

(** @statement Scan and Snap: Theorem 1(a)
    @kind besides
    @hypotheses any K >= 4, M >= K and lambda > 1/sqrt(K - 2)
    @formula there are features of norm 1 with entries >= 0 and an inverse Gram matrix, |E x| <= lambda |x| for
      every x, and a class with xi_n < 0 although it overlaps with another: a star of overlaps
    @note So 1/sqrt(K - 2), not the printed 1/K, is the largest bound of |lambda_1(E)| that is enough by itself. The
      star has eigenvalues of zero: Assumption 2's |lambda_i(E)| >= 6/sqrt(M) leaves it out. *)
Theorem bound_of_theorem1a_is_sharp :
  forall M K lambda, (4 <= K)%nat -> (K <= M)%nat -> 1 / sqrt (INR K - 2) < lambda ->
  exists F Ginv, inverse_of K Ginv (gram M F) /\
  (forall a, (a < K)%nat -> gram M F a a = 1) /\ (forall l a, 0 <= F l a) /\
  at_most K (E M F) lambda /\ 0 < gram M F 1 0 /\
  forall gamma, 0 < gamma -> xi M K F Ginv gamma 1 < 0.
Proof.
  intros M K lambda HK HM HL.
  assert (P : 2 <= INR K - 2) by (pose proof (le_INR 4 K HK) as Q; simpl in Q; lra).
  assert (PM : 4 <= INR M) by (pose proof (le_INR 4 M ltac:(lia)) as Q; simpl in Q; lra).
  set (k := INR K - 2) in *.
  assert (Rk : 0 < sqrt k) by (apply sqrt_lt_R0; lra).
  assert (Sk : sqrt k * sqrt k = k) by (apply sqrt_sqrt; lra).
  assert (L2 : 1 < lambda ^ 2 * k).
  { apply (Rmult_lt_compat_r (sqrt k)) in HL; [|exact Rk].
    replace (1 / sqrt k * sqrt k) with 1 in HL by (field; lra).
    set (q := sqrt k) in *. rewrite <- Sk. nra. }
  assert (Ll : 0 < lambda).
  { apply Rlt_trans with (2 := HL). apply Rdiv_lt_0_compat; lra. }
  (* k times the square of lambda, at most (1 + k)/2 *)
  set (s := Rmin (lambda ^ 2 * k) ((1 + k) / 2)).
  assert (Hs : 1 < s < k /\ s <= lambda ^ 2 * k).
  { unfold s. pose proof (Rmin_l (lambda ^ 2 * k) ((1 + k) / 2)). pose proof (Rmin_r (lambda ^ 2 * k) ((1 + k) / 2)).
    split; [split; [apply Rmin_glb_lt; lra|lra]|lra]. }
  set (r := sqrt ((1 + s) / 2)). assert (R2 : r ^ 2 = (1 + s) / 2) by (unfold r; simpl; rewrite Rmult_1_r; apply sqrt_sqrt; lra).
  assert (Pr : 0 < r) by (apply sqrt_lt_R0; lra). assert (R1 : 1 < r) by nra.
  set (w := r / k).
  set (e := Rmin ((s - 1) / (2 * k)) ((r - 1) / (2 * (INR M - 1)))).
  assert (Pe : 0 < e) by (apply Rmin_glb_lt; apply Rdiv_lt_0_compat; lra).
  assert (E1 : e <= (s - 1) / (2 * k)) by apply Rmin_l.
  assert (E2 : e <= (r - 1) / (2 * (INR M - 1))) by apply Rmin_r.
  assert (Pw : 0 < w) by (apply Rdiv_lt_0_compat; lra).
  assert (Esmall : (s - 1) / (2 * k) < 1 / 2).
  { apply (Rmult_lt_reg_r (2 * k)); [lra|]. replace ((s - 1) / (2 * k) * (2 * k)) with (s - 1) by (field; lra). lra. }
  assert (Sq : e ^ 2 + k * w ^ 2 <= s / k).
  { assert (e ^ 2 <= (s - 1) / (2 * k)) by nra.
    assert (k * w ^ 2 = (1 + s) / (2 * k)) by (unfold w; replace (k * (r / k) ^ 2) with (r ^ 2 / k) by (field; lra); rewrite R2; field; lra).
    replace (s / k) with ((s - 1) / (2 * k) + (1 + s) / (2 * k)) by (field; lra). lra. }
  assert (Small : e ^ 2 + k * w ^ 2 < 1).
  { apply Rle_lt_trans with (1 := Sq). apply (Rmult_lt_reg_r k); [lra|]. replace (s / k * k) with s by (field; lra). lra. }
  exists (star K e w), (star_inverse K e w).
  split; [now apply star_is_inverse|]. split.
  { intros a La. rewrite star_gram by assumption. destruct a; [reflexivity|apply kron_same]. }
  split.
  { intros l a. unfold star. destruct a; [|unfold kron; destruct (Nat.eqb l (S a)); lra].
    destruct l; [apply sqrt_pos|]. destruct (Nat.ltb (S l) K); [|lra]. unfold arm. destruct l; lra. }
  split.
  { intro x. apply Rle_trans with (1 := star_norm M K e w HK HM Small x).
    apply Rmult_le_compat_r; [apply sqrt_pos|]. rewrite <- (sqrt_pow2 lambda) by lra. apply sqrt_le_1_alt.
    fold k. apply Rle_trans with (1 := Sq). apply (Rmult_le_reg_r k); [lra|]. replace (s / k * k) with s by (field; lra). lra. }
  split; [rewrite star_gram by (assumption || lia); exact Pe|].
  intros gamma Pg. apply star_xi; try assumption. fold k.
  replace (k * w) with r by (unfold w; field; lra).
  apply Rle_lt_trans with ((r - 1) / (2 * (INR M - 1)) * (INR M - 1)); [apply Rmult_le_compat_r; lra|].
  replace ((r - 1) / (2 * (INR M - 1)) * (INR M - 1)) with ((r - 1) / 2) by (field; lra). lra.
Qed.
