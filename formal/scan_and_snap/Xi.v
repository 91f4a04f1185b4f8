(** Theorem 1(a): xi_n > 0, how weak the overlaps must be for it, and beta for equal overlaps. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
From Formal.scan_and_snap Require Import Decoder Signal.
Open Scope R_scope.

(** E = F^T F - I *)
Definition E (M : nat) (F : nat -> nat -> R) (a b : nat) : R := gram M F a b - kron a b.

Definition apply (K : nat) (A : nat -> nat -> R) (x : nat -> R) (a : nat) : R := Sum K (fun b => A a b * x b).

(** |lambda_1(E)| <= lambda: E makes no vector longer than lambda times its length. *)
Definition at_most (K : nat) (A : nat -> nat -> R) (lambda : R) : Prop :=
  forall x, norm K (apply K A x) <= lambda * norm K x.

(** |lambda_i(E)| >= mu for all i: E makes no vector shorter than mu times its length. *)
Definition at_least (K : nat) (A : nat -> nat -> R) (mu : R) : Prop :=
  forall x, mu * norm K x <= norm K (apply K A x).

Lemma norm_nonneg n v : 0 <= norm n v.
Proof. apply sqrt_pos. Qed.

Lemma dot_apply_sym K A x y : (forall a b, A a b = A b a) -> dot K x (apply K A y) = dot K (apply K A x) y.
Proof.
  intro S. unfold dot, apply.
  rewrite (Sum_ext K _ (fun i => Sum K (fun b => x i * (A i b * y b)))) by (intros; now rewrite Sum_scal).
  rewrite Sum_swap. apply Sum_ext. intros b _. rewrite <- Sum_scal_r. apply Sum_ext. intros i _. rewrite (S i b). ring.
Qed.

Lemma norm_unit K n : (n < K)%nat -> norm K (fun i => kron i n) = 1.
Proof.
  intro L. unfold norm, dot. rewrite (Sum_kron K n (fun i => kron i n) L), kron_same. apply sqrt_1.
Qed.

Lemma apply_unit K A n a : (n < K)%nat -> apply K A (fun i => kron i n) a = A a n.
Proof.
  intro L. unfold apply. rewrite (Sum_ext K _ (fun b => kron b n * A a b)) by (intros; ring).
  now apply (Sum_kron K n (fun b => A a b)).
Qed.

Section Positive.
Variables (M K n : nat) (F Ginv : nat -> nat -> R) (lambda : R).
Let G := gram M F.
Hypotheses (HM : (2 <= M)%nat) (HK : (2 <= K)%nat) (Hn : (n < K)%nat) (HG : inverse_of K Ginv G).
Hypotheses (Unit : forall a, (a < K)%nat -> G a a = 1) (Pos : forall l a, 0 <= F l a).
Hypotheses (L0 : 0 <= lambda < 1) (L1 : lambda ^ 2 * (INR K - 2) < 1) (Weak : at_most K (E M F) lambda).
Hypothesis Touches : exists a, (a < K)%nat /\ a <> n /\ 0 < G n a.

Let Gsym a b : G a b = G b a.
Proof. apply gram_sym. Qed.

Let Gpos a b : 0 <= G a b.
Proof. apply Sum_nonneg. intros. apply Rmult_le_pos; apply Pos. Qed.

Let GE a b : G a b = kron a b + E M F a b.
Proof. unfold E. fold G. ring. Qed.

Let applyG x a : (a < K)%nat -> apply K G x a = x a + apply K (E M F) x a.
Proof.
  intro La. unfold apply. rewrite (Sum_ext K _ (fun b => kron a b * x b + E M F a b * x b)) by (intros; rewrite GE; ring).
  rewrite Sum_plus, (Sum_kron_r K a x La). reflexivity.
Qed.

(** x . G x >= (1 - lambda)|x|^2 *)
Let definite x : (1 - lambda) * dot K x x <= dot K x (apply K G x).
Proof.
  replace (dot K x (apply K G x)) with (dot K x x + dot K x (apply K (E M F) x)).
  2:{ unfold dot. rewrite <- Sum_plus. apply Sum_ext. intros. rewrite applyG by assumption. ring. }
  pose proof (cauchy_schwarz K x (apply K (E M F) x)) as C. pose proof (Weak x) as W.
  pose proof (norm_sqr K x) as N1. pose proof (norm_sqr K (apply K (E M F) x)) as N2.
  rewrite <- N1, <- N2 in C. rewrite <- N1.
  pose proof (norm_nonneg K x). pose proof (norm_nonneg K (apply K (E M F) x)).
  set (nx := norm K x) in *. set (ne := norm K (apply K (E M F) x)) in *. set (d := dot K x (apply K (E M F) x)) in *.
  assert (- (nx * ne) <= d).
  { destruct (Rle_lt_dec (- (nx * ne)) d) as [|B]; [easy|exfalso].
    assert (0 <= nx * ne) by (apply Rmult_le_pos; assumption).
    replace (nx * nx * (ne * ne)) with ((nx * ne) ^ 2) in C by ring. nra. }
  assert (nx * ne <= nx * (lambda * nx)) by (apply Rmult_le_compat_l; assumption).
  replace ((1 - lambda) * (nx * nx)) with (nx * nx - nx * (lambda * nx)) by ring. lra.
Qed.

(** Column n of the inverse. *)
Let p a := Ginv a n.

Let Gp a : (a < K)%nat -> apply K G p a = kron a n.
Proof. intro La. apply HG; assumption. Qed.

Let p_at_n : 1 < p n.
Proof.
  set (d := fun a => p a - kron a n).
  assert (Gd : forall a, (a < K)%nat -> apply K G d a = kron a n - G a n).
  { intros a La. unfold apply, d. rewrite (Sum_ext K _ (fun b => G a b * p b - kron b n * G a b)) by (intros; ring).
    rewrite Sum_minus, (Sum_kron K n (fun b => G a b) Hn). f_equal. now apply Gp. }
  assert (Q : dot K d (apply K G d) = p n - 1).
  { unfold dot. rewrite (Sum_ext K _ (fun a => kron a n * d a - (G n a * p a - kron a n * G n a))).
    - rewrite !Sum_minus, (Sum_kron K n d Hn), (Sum_kron K n (fun a => G n a) Hn).
      fold (apply K G p n). rewrite Gp, Unit by assumption. unfold d. rewrite kron_same. ring.
    - intros a La. rewrite Gd by assumption. rewrite (Gsym a n). unfold d. ring. }
  pose proof (definite d) as D. rewrite Q in D.
  destruct Touches as [a [La [Na Ga]]].
  assert (0 < dot K d d).
  { destruct (Req_dec (dot K d d) 0) as [Z|N]; [exfalso|pose proof (dot_nonneg K d); lra].
    assert (Zd : forall b, (b < K)%nat -> d b = 0).
    { intros b Lb. pose proof (Sum_ge_term K (fun i => d i * d i) b (fun i _ => Rle_0_sqr (d i)) Lb) as S.
      cbv beta in S. unfold dot in Z. rewrite Z in S. nra. }
    pose proof (Gd a La) as B. unfold apply in B. rewrite Sum_zero in B by (intros; rewrite Zd by assumption; ring).
    rewrite kron_other, (Gsym a n) in B by assumption. lra. }
  nra.
Qed.

(** What row i of the others' overlaps sums to. *)
Let row i := Sum K (fun j => if orb (Nat.eqb j n) (Nat.eqb j i) then 0 else G i j).

Let bound := sqrt (lambda ^ 2 * (INR K - 2)).

Let bound_below_one : 0 <= bound < 1.
Proof.
  unfold bound. split; [apply sqrt_pos|]. rewrite <- sqrt_1. apply sqrt_lt_1; [|lra|exact L1].
  apply Rmult_le_pos; [apply pow2_ge_0|]. assert (2 <= INR K) by (apply (le_INR 2); exact HK). lra.
Qed.

Let row_small i : (i < K)%nat -> i <> n -> row i <= bound.
Proof.
  intros Li Ni. set (one := fun j => if orb (Nat.eqb j n) (Nat.eqb j i) then 0 else 1).
  assert (Count : dot K one one = INR K - 2).
  { unfold dot. rewrite (Sum_ext K _ (fun j => 1 - kron j n * 1 - kron j i * 1)).
    - rewrite !Sum_minus, Sum_const, (Sum_kron K n (fun _ => 1) Hn), (Sum_kron K i (fun _ => 1) Li). ring.
    - intros j _. unfold one, kron. destruct (Nat.eqb_spec j n) as [->|].
      + apply not_eq_sym, Nat.eqb_neq in Ni. rewrite Ni. simpl. ring.
      + simpl. destruct (Nat.eqb j i); ring. }
  assert (Row : row i = dot K one (apply K (E M F) (fun j => kron j i))).
  { unfold row, dot. apply Sum_ext. intros j Lj. rewrite apply_unit by assumption. unfold one, E. fold G.
    destruct (Nat.eqb_spec j n); simpl; [ring|]. destruct (Nat.eqb_spec j i) as [|D]; [ring|].
    rewrite (kron_other j i), (Gsym j i) by exact D. ring. }
  assert (Short : dot K (apply K (E M F) (fun j => kron j i)) (apply K (E M F) (fun j => kron j i)) <= lambda ^ 2).
  { rewrite <- norm_sqr. pose proof (Weak (fun j => kron j i)) as W. rewrite norm_unit in W by exact Li.
    pose proof (norm_nonneg K (apply K (E M F) (fun j => kron j i))). nra. }
  pose proof (cauchy_schwarz K one (apply K (E M F) (fun j => kron j i))) as C. rewrite <- Row, Count in C.
  assert (2 <= INR K) by (apply (le_INR 2); exact HK).
  assert (B : row i ^ 2 <= lambda ^ 2 * (INR K - 2)) by nra.
  unfold bound. destruct (Rle_lt_dec (row i) 0) as [N|P]; [apply Rle_trans with (1 := N), sqrt_pos|].
  rewrite <- (sqrt_pow2 (row i)) by lra. now apply sqrt_le_1_alt.
Qed.

(** z solves (G z)_i = 1 for the other classes, with z_n = 0: it has no negative entry. *)
Let s a := Sum K (fun b => Ginv a b).
Let z a := s a - s n / p n * p a.

Let z_n : z n = 0.
Proof. unfold z. pose proof p_at_n. field. lra. Qed.

Let Gz i : (i < K)%nat -> i <> n -> apply K G z i = 1.
Proof.
  intros Li Ni. unfold apply, z.
  rewrite (Sum_ext K _ (fun b => G i b * s b - s n / p n * (G i b * p b))) by (intros; ring).
  rewrite Sum_minus, Sum_scal. fold (apply K G p i). rewrite Gp, kron_other by assumption.
  unfold s at 1. rewrite (Sum_ext K _ (fun b => Sum K (fun c => G i b * Ginv b c))) by (intros; now rewrite Sum_scal).
  rewrite Sum_swap, (Sum_ext K _ (fun c => kron i c * 1)) by (intros; rewrite HG by assumption; ring).
  rewrite (Sum_kron_r K i (fun _ => 1) Li). ring.
Qed.

Let z_by_row i : (i < K)%nat -> i <> n ->
  z i = 1 - Sum K (fun j => (if orb (Nat.eqb j n) (Nat.eqb j i) then 0 else G i j) * z j).
Proof.
  intros Li Ni. rewrite <- (Gz i Li Ni) at 1. unfold apply.
  rewrite (Sum_ext K (fun b => G i b * z b)
    (fun j => kron j i * z j + (if orb (Nat.eqb j n) (Nat.eqb j i) then 0 else G i j) * z j)).
  - rewrite Sum_plus, (Sum_kron K i z Li). ring.
  - intros j Lj. unfold kron. destruct (Nat.eqb_spec j n) as [->|].
    + simpl. rewrite z_n. ring.
    + simpl. destruct (Nat.eqb_spec j i) as [->|]; [rewrite Unit by assumption; ring|ring].
Qed.

Let z_nonneg i : (i < K)%nat -> 0 <= z i.
Proof.
  destruct (least_entry z K ltac:(lia)) as [low [Llow Hlow]].
  destruct (least_entry (fun a => - z a) K ltac:(lia)) as [high [Lhigh Hhigh]].
  assert (Low0 : z low <= 0) by (rewrite <- z_n; apply Hlow; exact Hn).
  assert (High0 : 0 <= z high) by (pose proof (Hhigh n Hn); rewrite z_n in H; lra).
  pose proof bound_below_one as B.
  assert (W : forall a j, 0 <= (if orb (Nat.eqb j n) (Nat.eqb j a) then 0 else G a j)).
  { intros a j. destruct (orb (Nat.eqb j n) (Nat.eqb j a)); [lra|apply Gpos]. }
  assert (Up : z high <= 1 - bound * z low).
  { destruct (Nat.eq_dec high n) as [->|N]; [rewrite z_n; nra|].
    rewrite (z_by_row high Lhigh N). pose proof (row_small high Lhigh N) as S.
    assert (row high * z low <= Sum K (fun j => (if orb (Nat.eqb j n) (Nat.eqb j high) then 0 else G high j) * z j)).
    { unfold row. rewrite <- Sum_scal_r. apply Sum_le. intros j Lj. apply Rmult_le_compat_l; [apply W|now apply Hlow]. }
    nra. }
  assert (Down : z low = 0 \/ 1 - bound * z high <= z low).
  { destruct (Nat.eq_dec low n) as [->|N]; [left; apply z_n|right].
    rewrite (z_by_row low Llow N). pose proof (row_small low Llow N) as S.
    assert (Sum K (fun j => (if orb (Nat.eqb j n) (Nat.eqb j low) then 0 else G low j) * z j) <= row low * z high).
    { unfold row. rewrite <- Sum_scal_r. apply Sum_le. intros j Lj. apply Rmult_le_compat_l; [apply W|].
      pose proof (Hhigh j Lj). lra. }
    nra. }
  intro Li. apply Rle_trans with (z low); [|now apply Hlow].
  destruct Down as [->|D]; [lra|]. nra.
Qed.

Let others_of_p : Others K n p <= 0.
Proof.
  assert (Q : dot K p (apply K G z) = 0).
  { rewrite dot_apply_sym by exact Gsym. unfold dot.
    rewrite (Sum_ext K _ (fun i => kron i n * z i)) by (intros; rewrite Gp by assumption; ring).
    rewrite (Sum_kron K n z Hn). apply z_n. }
  unfold dot in Q. rewrite (Others_split K n _ Hn) in Q.
  rewrite (Others_ext K n _ p) in Q by (intros; rewrite Gz by assumption; ring).
  assert (0 <= apply K G z n).
  { apply Sum_nonneg. intros j Lj. apply Rmult_le_pos; [apply Gpos|now apply z_nonneg]. }
  pose proof p_at_n. nra.
Qed.

Lemma xi_by_inverse g : xi M K F Ginv g n = g * (q1 M * (p n - 1) + q0 M * Others K n p).
Proof.
  unfold xi. f_equal. fold G.
  assert (A : Sum K (fun n' => beta M K Ginv n n' * G n n') = - q1 M).
  { unfold beta.
    rewrite (Sum_ext K _ (fun n' => - Sum K (fun c => G n n' * Ginv n' c * u M n c))).
    - rewrite Sum_opp, Sum_swap. f_equal.
      rewrite (Sum_ext K _ (fun c => kron n c * u M n c)).
      + rewrite (Sum_kron_r K n _ Hn). unfold u. now rewrite Nat.eqb_refl.
      + intros c Lc. rewrite Sum_scal_r. f_equal. now apply HG.
    - intros n' _. rewrite <- Ropp_mult_distr_l, <- Sum_scal_r. f_equal. apply Sum_ext. intros. ring. }
  rewrite (Others_split K n _ Hn), Unit in A by exact Hn.
  assert (B : beta M K Ginv n n = - (q1 M * p n + q0 M * Others K n p)).
  { unfold beta. f_equal. rewrite (Others_split K n _ Hn). unfold u at 1. rewrite Nat.eqb_refl.
    rewrite <- Others_scal. f_equal; [unfold p; ring|].
    apply Others_ext. intros c Lc Nc. unfold u, p. apply Nat.eqb_neq in Nc. rewrite Nc.
    rewrite (inverse_sym K G Ginv Gsym HG n c Hn Lc). ring. }
  lra.
Qed.

Lemma xi_positive g : 0 < g -> 0 < xi M K F Ginv g n.
Proof.
  intro Pg. rewrite xi_by_inverse. apply Rmult_lt_0_compat; [exact Pg|].
  assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM).
  assert (P1 : 0 < q1 M) by (unfold q1; apply Rdiv_lt_0_compat; lra).
  assert (P0 : q0 M < 0).
  { unfold q0, Rdiv. assert (0 < / (INR M - 1) ^ 2); [apply Rinv_0_lt_compat, pow_lt; lra|nra]. }
  pose proof p_at_n. pose proof others_of_p. nra.
Qed.
End Positive.

(** @statement Scan and Snap: Theorem 1(a)
    @kind clause
    @hypotheses any M >= 2, K >= 2, features of norm 1 with entries >= 0 and an inverse Gram matrix; |E x| <=
      lambda |x| for every x, with lambda < 1 and lambda sqrt(K - 2) < 1; class n overlaps with some class;
      gamma > 0
    @formula xi_n = gamma times the sum over n' other than n of beta_nn' f_n . f_n' is positive
    @note Weaker hypotheses than printed: lambda < 1/sqrt(K - 2) in place of 1/K, one overlap in place of
      |lambda_i(E)| >= 6/sqrt(M). |lambda_1(E)| is the norm of E as an operator. *)
Theorem theorem1a_sharp :
  forall M K n F Ginv lambda gamma, (2 <= M)%nat -> (2 <= K)%nat -> (n < K)%nat -> inverse_of K Ginv (gram M F) ->
  (forall a, (a < K)%nat -> gram M F a a = 1) -> (forall l a, 0 <= F l a) ->
  0 <= lambda < 1 -> lambda ^ 2 * (INR K - 2) < 1 -> at_most K (E M F) lambda ->
  (exists a, (a < K)%nat /\ a <> n /\ 0 < gram M F n a) -> 0 < gamma ->
  0 < xi M K F Ginv gamma n.
Proof.
  intros M K n F Ginv lambda gamma HM HK Hn HG Un Po L0 L1 W T Pg.
  exact (xi_positive M K n F Ginv lambda HM HK Hn HG Un Po L0 L1 W T gamma Pg).
Qed.

(** @statement Scan and Snap: Theorem 1(a)
    @kind clause
    @hypotheses as printed: any M >= 2, K >= 2, features of norm 1 with entries >= 0 and an inverse Gram matrix;
      |lambda_1(E)| < 1/K and |lambda_i(E)| >= 6/sqrt(M) for all i, as |E x| <= lambda |x| for a lambda < 1/K
      and |E x| >= 6/sqrt(M) |x| for every x; gamma > 0
    @formula xi_n = gamma times the sum over n' other than n of beta_nn' f_n . f_n' is positive for every n
    @note The same number of visits of every class. M >> K^2 is not needed. Eigenvalues stand as bounds on |E
      x|. *)
Theorem theorem1a :
  forall M K n F Ginv gamma, (2 <= M)%nat -> (2 <= K)%nat -> (n < K)%nat -> inverse_of K Ginv (gram M F) ->
  (forall a, (a < K)%nat -> gram M F a a = 1) -> (forall l a, 0 <= F l a) ->
  (exists lambda, 0 <= lambda < 1 / INR K /\ at_most K (E M F) lambda) ->
  at_least K (E M F) (6 / sqrt (INR M)) -> 0 < gamma ->
  0 < xi M K F Ginv gamma n.
Proof.
  intros M K n F Ginv gamma HM HK Hn HG Un Po [lambda [[L0 L1] W]] Low Pg.
  assert (PK : 2 <= INR K) by (apply (le_INR 2); exact HK).
  assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM).
  assert (Lk : lambda * INR K < 1).
  { apply (Rmult_lt_compat_r (INR K)) in L1; [|lra]. replace (1 / INR K * INR K) with 1 in L1 by (field; lra). exact L1. }
  assert (lambda < 1) by nra.
  apply (theorem1a_sharp M K n F Ginv lambda gamma); try assumption; [lra|nra|].
  (* E e_n is not zero *)
  pose proof (Low (fun i => kron i n)) as B. rewrite norm_unit, Rmult_1_r in B by exact Hn.
  assert (0 < 6 / sqrt (INR M)) by (apply Rdiv_lt_0_compat; [lra|apply sqrt_lt_R0; lra]).
  destruct (differ (fun a => if Nat.eqb a n then 0 else gram M F n a) (fun _ => 0) K) as [[a [La Na]]|Z].
  - exists a. destruct (Nat.eqb_spec a n) as [|D]; [now destruct Na|]. repeat split; try assumption.
    assert (0 <= gram M F n a) by (apply Sum_nonneg; intros; apply Rmult_le_pos; apply Po). lra.
  - exfalso. assert (norm K (apply K (E M F) (fun i => kron i n)) = 0); [|lra].
    unfold norm, dot. rewrite Sum_zero; [apply sqrt_0|]. intros a La. rewrite apply_unit by exact Hn.
    pose proof (Z a La) as Za. unfold E. destruct (Nat.eq_dec a n) as [Q|D].
    + rewrite Q, Un, kron_same by exact Hn. ring.
    + pose proof D as D'. apply Nat.eqb_neq in D'. cbv beta in Za. rewrite D' in Za.
      rewrite (gram_sym M F a n), Za, kron_other by exact D. ring.
Qed.

(** Equal overlaps rho of all pairs of classes. *)
Section Equal.
Variables (M K : nat) (F Ginv : nat -> nat -> R) (rho : R).
Hypotheses (HM : (2 <= M)%nat) (HK : (2 <= K)%nat) (HG : inverse_of K Ginv (gram M F)) (Hr : 0 < rho < 1).
Hypothesis Even : forall a b, (a < K)%nat -> (b < K)%nat -> gram M F a b = if Nat.eqb a b then 1 else rho.

Lemma even_inverse a b : (a < K)%nat -> (b < K)%nat ->
  Ginv a b = (kron a b - rho / (1 + (INR K - 1) * rho)) / (1 - rho).
Proof.
  assert (PK : 2 <= INR K) by (apply (le_INR 2); exact HK).
  assert (Row : forall a b, (a < K)%nat -> (b < K)%nat ->
    (1 - rho) * Ginv a b + rho * Sum K (fun c => Ginv c b) = kron a b).
  { clear a b. intros a b La Lb. rewrite <- (HG a b La Lb).
    rewrite (Sum_ext K (fun c => gram M F a c * Ginv c b) (fun c => (1 - rho) * (kron a c * Ginv c b) + rho * Ginv c b)).
    - rewrite Sum_plus, !Sum_scal, (Sum_kron_r K a (fun c => Ginv c b) La). reflexivity.
    - intros c Lc. rewrite Even by assumption. unfold kron. destruct (Nat.eqb a c); ring. }
  intros La Lb.
  assert (Total : (1 + (INR K - 1) * rho) * Sum K (fun c => Ginv c b) = 1).
  { assert (T : Sum K (fun a => (1 - rho) * Ginv a b + rho * Sum K (fun c => Ginv c b)) = Sum K (fun a => kron a b * 1)).
    { apply Sum_ext. intros c Lc. rewrite Row by assumption. ring. }
    rewrite Sum_plus, Sum_scal, Sum_const, (Sum_kron K b (fun _ => 1) Lb) in T. lra. }
  pose proof (Row a b La Lb) as R.
  assert (D : 0 < 1 + (INR K - 1) * rho) by nra.
  assert (S : Sum K (fun c => Ginv c b) = / (1 + (INR K - 1) * rho)).
  { apply (Rmult_eq_reg_l (1 + (INR K - 1) * rho)); [|lra]. rewrite Total. field. lra. }
  rewrite S in R. apply (Rmult_eq_reg_l (1 - rho)); [|lra].
  replace ((1 - rho) * ((kron a b - rho / (1 + (INR K - 1) * rho)) / (1 - rho)))
    with (kron a b - rho * / (1 + (INR K - 1) * rho)) by (field; lra). lra.
Qed.

Lemma even_beta n n' : (n < K)%nat -> (n' < K)%nat -> n' <> n ->
  beta M K Ginv n n' =
  INR M * (1 + (INR M - 1) * rho) / ((INR M - 1) ^ 2 * (1 - rho) * (1 + (INR K - 1) * rho)).
Proof.
  intros Ln Ln' D. assert (PK : 2 <= INR K) by (apply (le_INR 2); exact HK).
  assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM).
  assert (Q : 0 < 1 + (INR K - 1) * rho) by nra.
  unfold beta.
  rewrite (Sum_ext K _ (fun c => / (1 - rho) * (kron c n' * u M n c) - rho / (1 + (INR K - 1) * rho) / (1 - rho) * u M n c)).
  2:{ intros c Lc. rewrite even_inverse by assumption. rewrite (kron_sym n' c). field. lra. }
  rewrite Sum_minus, !Sum_scal, (Sum_kron K n' _ Ln'), (Others_split K n (u M n) Ln).
  rewrite (Others_ext K n (u M n) (fun _ => q0 M)).
  2:{ intros c _ N. unfold u. apply Nat.eqb_neq in N. now rewrite N. }
  rewrite (Others_const K n (q0 M) Ln). unfold u. rewrite Nat.eqb_refl. apply Nat.eqb_neq in D. rewrite D.
  unfold q0, q1. field. lra.
Qed.

Lemma even_xi gamma n : (n < K)%nat ->
  xi M K F Ginv gamma n = gamma * ((INR K - 1) * rho *
    (INR M * (1 + (INR M - 1) * rho) / ((INR M - 1) ^ 2 * (1 - rho) * (1 + (INR K - 1) * rho)))).
Proof.
  intro Ln. unfold xi. f_equal. rewrite (Others_ext K n _ (fun _ => rho * (INR M * (1 + (INR M - 1) * rho) /
    ((INR M - 1) ^ 2 * (1 - rho) * (1 + (INR K - 1) * rho))))).
  - rewrite (Others_const K n _ Ln). ring.
  - intros n' Ln' D. rewrite even_beta, Even by assumption. apply not_eq_sym, Nat.eqb_neq in D. rewrite D. ring.
Qed.
End Equal.

(** @statement Scan and Snap: Theorem 1(a)
    @kind besides
    @hypotheses any M >= 2 and K >= 2; f_n . f_n = 1 and f_n . f_n' = rho, 0 < rho < 1, for every pair; gamma >
      0
    @formula beta_nn' = M (1 + (M - 1) rho)/((M - 1)^2 (1 - rho)(1 + (K - 1) rho)) > 0 for every pair, and xi_n
      > 0
    @note No bound on rho but rho < 1. *)
Theorem equal_overlaps :
  forall M K F Ginv rho gamma, (2 <= M)%nat -> (2 <= K)%nat -> inverse_of K Ginv (gram M F) -> 0 < rho < 1 ->
  (forall a b, (a < K)%nat -> (b < K)%nat -> gram M F a b = if Nat.eqb a b then 1 else rho) -> 0 < gamma ->
  forall n, (n < K)%nat ->
  0 < xi M K F Ginv gamma n /\
  forall n', (n' < K)%nat -> n' <> n ->
  beta M K Ginv n n' =
    INR M * (1 + (INR M - 1) * rho) / ((INR M - 1) ^ 2 * (1 - rho) * (1 + (INR K - 1) * rho)) /\
  0 < beta M K Ginv n n'.
Proof.
  intros M K F Ginv rho gamma HM HK HG Hr Ev Pg n Ln.
  assert (PK : 2 <= INR K) by (apply (le_INR 2); exact HK).
  assert (PM : 2 <= INR M) by (apply (le_INR 2); exact HM).
  assert (P : 0 < INR M * (1 + (INR M - 1) * rho) / ((INR M - 1) ^ 2 * (1 - rho) * (1 + (INR K - 1) * rho))).
  { assert (0 < (INR M - 1) ^ 2) by (apply pow_lt; lra).
    assert (0 < 1 + (INR K - 1) * rho) by nra. assert (0 < 1 + (INR M - 1) * rho) by nra.
    apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; lra|].
    apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; lra|lra]. }
  split.
  - rewrite (even_xi M K F Ginv rho HM HK HG Hr Ev gamma n Ln).
    apply Rmult_lt_0_compat; [exact Pg|]. apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; lra|exact P].
  - intros n' Ln' D. rewrite (even_beta M K F Ginv rho HM HK HG Hr Ev n n' Ln Ln' D). split; [reflexivity|exact P].
Qed.
