(** The matrix of disjointness has full rank, that of intersection has not; what the average says of two sets.

    A set of n elements is a list of n bits. *)

Require Import Reals Lra Lia Psatz List FinFun.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(** The sum over all 2^n sets. *)
Fixpoint Over (n : nat) (f : list bool -> R) : R :=
  match n with
  | O => f nil
  | S k => Over k (fun b => f (false :: b)) + Over k (fun b => f (true :: b))
  end.

Fixpoint meet (a b : list bool) : bool :=
  match a, b with
  | x :: a', y :: b' => orb (andb x y) (meet a' b')
  | _, _ => false
  end.

(** max_i a_i b_i, and one less it. *)
Definition intersection (a b : list bool) : R := if meet a b then 1 else 0.
Definition disjointness (a b : list bool) : R := 1 - intersection a b.

Lemma Over_ext n f g : (forall b, List.length b = n -> f b = g b) -> Over n f = Over n g.
Proof.
  revert f g. induction n; intros f g H; simpl; [now apply H|].
  f_equal; apply IHn; intros b L; apply H; simpl; now rewrite L.
Qed.

Lemma Over_plus n f g : Over n (fun b => f b + g b) = Over n f + Over n g.
Proof. revert f g. induction n; intros; simpl; [ring|]. rewrite !IHn. ring. Qed.

Lemma Over_zero n : Over n (fun _ => 0) = 0.
Proof. induction n; simpl; [reflexivity|]. rewrite IHn. ring. Qed.

(** The columns are linearly independent. *)
Lemma columns_independent : forall n (x : list bool -> R),
  (forall a, List.length a = n -> Over n (fun b => disjointness a b * x b) = 0) ->
  forall b, List.length b = n -> x b = 0.
Proof.
  induction n; intros x H b L.
  - apply length_zero_iff_nil in L. subst b. pose proof (H nil eq_refl) as E. simpl in E.
    unfold disjointness, intersection in E. simpl in E. lra.
  - assert (Without : forall a, List.length a = n -> Over n (fun b => disjointness a b * x (false :: b)) = 0).
    { intros a La. pose proof (H (true :: a)) as E. simpl in E. rewrite La in E. specialize (E eq_refl).
      rewrite (Over_ext n (fun b => disjointness (true :: a) (true :: b) * x (true :: b)) (fun _ => 0)) in E.
      - rewrite Over_zero in E. rewrite <- E, Rplus_0_r. apply Over_ext. intros. reflexivity.
      - intros c _. unfold disjointness, intersection. simpl. ring. }
    assert (Both : forall a, List.length a = n ->
      Over n (fun b => disjointness a b * (x (false :: b) + x (true :: b))) = 0).
    { intros a La. pose proof (H (false :: a)) as E. simpl in E. rewrite La in E. specialize (E eq_refl).
      rewrite <- E, <- Over_plus. apply Over_ext. intros c _. unfold disjointness, intersection. simpl. ring. }
    pose proof (IHn (fun b => x (false :: b)) Without) as Z0. pose proof (IHn (fun b => x (false :: b) + x (true :: b)) Both) as Z1.
    destruct b as [|[|] b]; [discriminate| |]; simpl in L; injection L as L.
    + pose proof (Z0 b L). pose proof (Z1 b L). simpl in *. lra.
    + now apply Z0.
Qed.

Lemma meet_nothing a n : meet a (repeat false n) = false.
Proof. revert a. induction n; intros [|x a]; simpl; try reflexivity. now rewrite Bool.andb_false_r, IHn. Qed.

Lemma Over_scal n c f : Over n (fun b => c * f b) = c * Over n f.
Proof. revert f. induction n; intro f; simpl; [reflexivity|]. rewrite !IHn. ring. Qed.

(** The set without elements, as a column. *)
Definition empty_set (n : nat) (b : list bool) : R := if list_eq_dec Bool.bool_dec b (repeat false n) then 1 else 0.

Lemma Over_empty n f : Over n (fun b => f b * empty_set n b) = f (repeat false n).
Proof.
  revert f. induction n; intro f; simpl.
  - unfold empty_set. simpl. ring.
  - assert (E : Over n (fun b => f (true :: b) * empty_set (S n) (true :: b)) = 0).
    { rewrite (Over_ext n _ (fun _ => 0)); [apply Over_zero|]. intros b _. unfold empty_set. simpl.
      destruct (Bool.bool_dec true false); [discriminate|]. simpl. ring. }
    rewrite E, <- (IHn (fun b => f (false :: b))), Rplus_0_r. apply Over_ext. intros b _. f_equal. unfold empty_set. simpl.
    destruct (list_eq_dec Bool.bool_dec b (repeat false n)) as [->|D].
    + destruct (list_eq_dec Bool.bool_dec (false :: repeat false n) (false :: repeat false n)) as [|N]; [reflexivity|now destruct N].
    + destruct (list_eq_dec Bool.bool_dec (false :: b) (false :: repeat false n)) as [N|]; [|reflexivity].
      injection N as N. now destruct D.
Qed.

(** @statement Sparse averaging: Rank bound
    @clause ranks
    @kind clause
    @hypotheses any n
    @formula the 2^n columns of 1 - max_i a_i b_i are linearly independent, so that its rank is 2^n; what max_i a_i b_i sends
      to zero are the multiples of one vector, the set without elements, so that its rank is 2^n - 1
    @note Rank is the number of columns, 2^n, less the dimension of what is sent to zero. *)
Theorem ranks :
  forall n, Over n (fun _ => 1) = 2 ^ n /\
  (forall x, (forall a, List.length a = n -> Over n (fun b => disjointness a b * x b) = 0) ->
    forall b, List.length b = n -> x b = 0) /\
  (forall a, List.length a = n -> Over n (fun b => intersection a b * empty_set n b) = 0) /\
  empty_set n (repeat false n) <> 0 /\
  (forall x, (forall a, List.length a = n -> Over n (fun b => intersection a b * x b) = 0) ->
    exists c, forall b, List.length b = n -> x b = c * empty_set n b).
Proof.
  intro n. repeat split.
  - induction n; simpl; [reflexivity|]. rewrite IHn. ring.
  - apply columns_independent.
  - intros a _. rewrite Over_empty. unfold intersection. now rewrite meet_nothing.
  - unfold empty_set. destruct (list_eq_dec Bool.bool_dec (repeat false n) (repeat false n)) as [|N]; [lra|now destruct N].
  - intros x H. set (s := Over n x). exists s. intros b L.
    (* 1 - max sends x to the constant s, as it sends s times the empty set *)
    pose proof (columns_independent n (fun b => x b - s * empty_set n b)) as Z. cbv beta in Z.
    assert (x b - s * empty_set n b = 0); [|lra]. apply Z; [|exact L]. intros a La.
    rewrite (Over_ext n _ (fun b => (x b + -1 * (intersection a b * x b)) + - s * (disjointness a b * empty_set n b)))
      by (intros; unfold disjointness; ring).
    rewrite !Over_plus, !Over_scal, (H a La), Over_empty. unfold disjointness, intersection. rewrite meet_nothing.
    fold s. ring.
Qed.

(** @statement Sparse averaging: Theorem 4
    @clause rank of disjointness
    @kind clause
    @hypotheses any q
    @formula the matrix of disjointness on q elements has 2^q columns, and they are linearly independent: its rank is 2^q
    @note A part of the theorem on ranks, which stands at the rank bound. *)
Theorem rank_of_disjointness :
  forall q, Over q (fun _ => 1) = 2 ^ q /\
  forall x, (forall a, List.length a = q -> Over q (fun b => disjointness a b * x b) = 0) ->
  forall b, List.length b = q -> x b = 0.
Proof. intro q. destruct (ranks q) as [C [R _]]. split; assumption. Qed.

(** @statement Sparse averaging: Rank bound
    @clause ranks
    @kind erratum
    @hypotheses any n
    @formula the columns of max_i a_i b_i are linearly dependent: its rank is below 2^n
    @note That it is 2^n - 1 stands in the theorem on ranks. *)
Theorem intersection_lacks_rank :
  forall n, exists x : list bool -> R,
  (exists b, List.length b = n /\ x b <> 0) /\
  forall a, List.length a = n -> Over n (fun b => intersection a b * x b) = 0.
Proof.
  intro n. set (e := repeat false n).
  exists (fun b => if list_eq_dec Bool.bool_dec b e then 1 else 0). split.
  - exists e. split; [apply repeat_length|]. destruct (list_eq_dec Bool.bool_dec e e) as [|N]; [lra|now destruct N].
  - intros a _. rewrite (Over_ext n _ (fun _ => 0)); [apply Over_zero|]. intros b _.
    destruct (list_eq_dec Bool.bool_dec b e) as [->|]; [|ring]. unfold intersection, e. rewrite meet_nothing. ring.
Qed.

(** Alice's set takes z_(2i) where a_i = 1 and z_(2i-1) where not; Bob has z_(2i) = 2 b_i - 1 and z_(2i-1) = -1. *)
Definition value (b : list bool) (i : nat) : R := if nth i b false then 1 else -1.
Definition average (q : nat) (a b : list bool) : R :=
  / INR q * Sum q (fun i => if nth i a false then value b i else -1).

Lemma meet_nth a b : meet a b = true -> exists i, (i < List.length a)%nat /\ nth i a false = true /\ nth i b false = true.
Proof.
  revert b. induction a as [|x a IH]; intros [|y b] H; simpl in H; try discriminate.
  apply Bool.orb_prop in H. destruct H as [H|H].
  - apply andb_prop in H. destruct H as [-> ->]. exists 0%nat. simpl. repeat split. lia.
  - destruct (IH b H) as [i [L [A B]]]. exists (S i). simpl. repeat split; try assumption. lia.
Qed.

Lemma nth_meet a b i : nth i a false = true -> nth i b false = true -> meet a b = true.
Proof.
  revert b i. induction a as [|x a IH]; intros b i A B; [destruct i; discriminate|].
  destruct b as [|y b]; [destruct i; discriminate|]. destruct i; simpl in *.
  - now rewrite A, B.
  - rewrite (IH b i A B). apply Bool.orb_true_r.
Qed.

(** @statement Sparse averaging: Theorem 4
    @clause the average tells disjoint sets from others
    @kind clause
    @hypotheses any q >= 1, any sets a and b of q bits; z_2i = 2 b_i - 1, z_(2i-1) = -1, y = {2i + a_i - 1}
    @formula the average is -1 if a and b are disjoint, and -1 + 2/q or more if not *)
Theorem average_tells_disjoint_sets :
  forall q a b, (0 < q)%nat -> List.length a = q ->
  (meet a b = false -> average q a b = -1) /\ (meet a b = true -> -1 + 2 / INR q <= average q a b).
Proof.
  intros q a b Pq La. assert (P : 0 < INR q) by now apply (lt_INR 0).
  assert (E : average q a b = -1 + / INR q * Sum q (fun i => if andb (nth i a false) (nth i b false) then 2 else 0)).
  { unfold average, value.
    rewrite (Sum_ext q _ (fun i => -1 + (if andb (nth i a false) (nth i b false) then 2 else 0))).
    - rewrite Sum_plus, Sum_const. field. lra.
    - intros i _. destruct (nth i a false), (nth i b false); simpl; ring. }
  rewrite E. assert (0 < / INR q) by now apply Rinv_0_lt_compat. split; intro H1.
  - rewrite Sum_zero; [ring|]. intros i _. destruct (nth i a false) eqn:A; [|reflexivity].
    destruct (nth i b false) eqn:B; [|reflexivity]. rewrite (nth_meet a b i A B) in H1. discriminate.
  - destruct (meet_nth a b H1) as [i [L [A B]]]. rewrite La in L.
    assert (2 <= Sum q (fun i => if andb (nth i a false) (nth i b false) then 2 else 0)).
    { pose proof (Sum_ge_term q (fun i => if andb (nth i a false) (nth i b false) then 2 else 0) i) as S.
      cbv beta in S. rewrite A, B in S. simpl andb in S. cbv iota in S. apply S; [|exact L]. intros j _. destruct (nth j a false), (nth j b false); simpl; lra. }
    unfold Rdiv. nra.
Qed.

(** The slides' encoding: Alice has z_(2i-1) where a_i = 1, Bob's values are as above. *)
Definition average_printed (q : nat) (a b : list bool) : R :=
  / INR q * Sum q (fun i => if nth i a false then -1 else value b i).

(** @statement Sparse averaging: Theorem 4
    @kind erratum
    @hypotheses any q >= 1; Alice's set takes z_(2i-1) where a_i = 1, as on the slides
    @formula there are disjoint sets a and b whose average is not -1
    @note The slides' z have a_i for b_i besides; here they are Bob's. *)
Theorem parity_of_the_slides_is_false :
  forall q, (0 < q)%nat -> exists a b, List.length a = q /\ List.length b = q /\
  meet a b = false /\ average_printed q a b <> -1.
Proof.
  intros q Pq. assert (P : 0 < INR q) by now apply (lt_INR 0).
  exists (repeat false q), (repeat true q). rewrite !repeat_length. repeat split.
  - clear. induction q; simpl; [reflexivity|exact IHq].
  - unfold average_printed, value. rewrite (Sum_ext q _ (fun _ => 1)).
    + rewrite Sum_const. replace (/ INR q * (INR q * 1)) with 1 by (field; lra). lra.
    + intros i L. rewrite nth_repeat. replace (nth i (repeat true q) false) with true; [reflexivity|].
      rewrite (nth_indep _ false true) by (rewrite repeat_length; exact L). now rewrite nth_repeat.
Qed.

(** All sets of q elements, each once. *)
Fixpoint sets (q : nat) : list (list bool) :=
  match q with O => [nil] | S k => map (cons false) (sets k) ++ map (cons true) (sets k) end.

Lemma sets_are_all q : List.length (sets q) = (2 ^ q)%nat /\ NoDup (sets q) /\ forall a, In a (sets q) -> List.length a = q.
Proof.
  induction q as [|q [L [D A]]]; simpl.
  - repeat split; [constructor; [intros []|constructor]|]. intros a [<-|[]]. reflexivity.
  - rewrite app_length, !map_length, L. repeat split; [lia| |].
    + assert (Inj : forall x, NoDup (map (cons x) (sets q))).
      { intro x. apply Injective_map_NoDup; [|exact D]. intros a b E. now injection E. }
      assert (App : forall l l' : list (list bool), NoDup l -> NoDup l' -> (forall a, In a l -> ~ In a l') -> NoDup (l ++ l')).
      { induction l as [|x l IH]; intros l' Dl Dl' Off; [exact Dl'|]. inversion Dl; subst. simpl. constructor.
        - rewrite in_app_iff. intros [I|I]; [contradiction|]. apply (Off x); [now left|exact I].
        - apply IH; [assumption|exact Dl'|]. intros a I. apply Off. now right. }
      apply App; [apply Inj|apply Inj|]. intros a I J. apply in_map_iff in I. apply in_map_iff in J.
      destruct I as [b [<- _]], J as [c [E _]]. discriminate.
    + intros a I. apply in_app_iff in I. destruct I as [I|I]; apply in_map_iff in I; destruct I as [b [<- I]]; simpl;
      now rewrite (A b I).
Qed.

(** Different sets are told apart by a third one. *)
Lemma sets_told_apart a : forall a', List.length a = List.length a' -> a <> a' ->
  exists b, List.length b = List.length a /\ meet a b <> meet a' b.
Proof.
  induction a as [|x a IH]; intros [|y a'] L N; simpl in L; try discriminate; [now destruct N|].
  injection L as L. destruct (Bool.bool_dec x y) as [->|D].
  - destruct (IH a' L) as [b [Lb M]]; [intros ->; now destruct N|]. exists (false :: b). simpl. rewrite Lb.
    split; [reflexivity|]. rewrite !Bool.andb_false_r. exact M.
  - exists (true :: repeat false (List.length a)). simpl. rewrite repeat_length, !meet_nothing. split; [reflexivity|].
    destruct x, y; simpl; congruence.
Qed.

(** @statement Sparse averaging: Theorem 4
    @clause a message of q bits
    @kind clause
    @hypotheses q >= 1; K messages, one of them for each set a of Alice; an output that depends on her message and on b
      alone; it is within less than 1/q of the average for all a and b of q bits
    @formula K >= 2^q: a message of (2m + d')p bits, a query, a key and a value, needs (2m + d')p >= q
    @note A unit's last output is such: row 2q + 1 of its softmax has Alice's query, key and value, and else Bob's tokens.
      No rank is needed, for Alice alone sends. *)
Theorem messages_have_q_bits :
  forall q K (message : list bool -> nat) (output : nat -> list bool -> R), (0 < q)%nat ->
  (forall a, List.length a = q -> (message a < K)%nat) ->
  (forall a b, List.length a = q -> List.length b = q -> Rabs (output (message a) b - average q a b) < 1 / INR q) ->
  (2 ^ q <= K)%nat.
Proof.
  intros q K message output Pq Few Right. assert (P : 0 < INR q) by now apply (lt_INR 0).
  destruct (sets_are_all q) as [L [D A]].
  assert (Inj : forall a a', List.length a = q -> List.length a' = q -> message a = message a' -> a = a').
  { intros a a' La La' E. destruct (list_eq_dec Bool.bool_dec a a') as [|N]; [assumption|exfalso].
    destruct (sets_told_apart a a' ltac:(congruence) N) as [b [Lb M]]. rewrite La in Lb.
    pose proof (Right a b La Lb) as R1. pose proof (Right a' b La' Lb) as R2. rewrite <- E in R2.
    destruct (average_tells_disjoint_sets q a b Pq La) as [F T], (average_tells_disjoint_sets q a' b Pq La') as [F' T'].
    assert (G : 2 / INR q = 1 / INR q + 1 / INR q) by (field; lra).
    apply Rabs_def2 in R1. apply Rabs_def2 in R2.
    destruct (meet a b), (meet a' b); try congruence.
    - specialize (T eq_refl). specialize (F' eq_refl). lra.
    - specialize (F eq_refl). specialize (T' eq_refl). lra. }
  rewrite <- L, <- (map_length message (sets q)), <- (seq_length K 0). apply NoDup_incl_length.
  - clear L. induction D as [|a l I D IH]; simpl; [constructor|]. constructor.
    + intro J. apply in_map_iff in J. destruct J as [b [E J]]. apply I.
      rewrite (Inj a b); [exact J|apply A; now left|apply A; now right|now symmetry].
    + apply IH. intros b J. apply A. now right.
  - intros n I. apply in_map_iff in I. destruct I as [a [<- I]]. apply in_seq. pose proof (Few a (A a I)). lia.
Qed.

(** @statement Sparse averaging: Match3, one layer
    @clause a message of (N - 1)/2 bits
    @kind clause
    @hypotheses any n; Alice sends one of K messages, from which and from his own set Bob tells whether both sets meet
    @formula K >= 2^n
    @note n = (N - 1)/2 in the reduction. No rank is needed, for Alice alone sends. *)
Theorem messages_that_decide :
  forall n K (message : list bool -> nat) (decides : nat -> list bool -> bool),
  (forall a, List.length a = n -> (message a < K)%nat) ->
  (forall a b, List.length a = n -> List.length b = n -> decides (message a) b = meet a b) ->
  (2 ^ n <= K)%nat.
Proof.
  intros n K message decides Few Right. destruct (sets_are_all n) as [L [D A]].
  assert (Inj : forall a a', List.length a = n -> List.length a' = n -> message a = message a' -> a = a').
  { intros a a' La La' E. destruct (list_eq_dec Bool.bool_dec a a') as [|N]; [assumption|exfalso].
    destruct (sets_told_apart a a' ltac:(congruence) N) as [b [Lb M]]. rewrite La in Lb.
    apply M. rewrite <- (Right a b La Lb), <- (Right a' b La' Lb). now rewrite E. }
  rewrite <- L, <- (map_length message (sets n)), <- (seq_length K 0). apply NoDup_incl_length.
  - clear L. induction D as [|a l I D IH]; simpl; [constructor|]. constructor.
    + intro J. apply in_map_iff in J. destruct J as [b [E J]]. apply I.
      rewrite (Inj a b); [exact J|apply A; now left|apply A; now right|now symmetry].
    + apply IH. intros b J. apply A. now right.
  - intros k I. apply in_map_iff in I. destruct I as [a [<- I]]. apply in_seq. pose proof (Few a (A a I)). lia.
Qed.

(** A deterministic protocol: whoever's turn it is sends a bit of what she or he holds; at the end both know the answer. *)
Inductive protocol : Type :=
  | Answer (says : bool)
  | Alice (bit : list bool -> bool) (yes no : protocol)
  | Bob (bit : list bool -> bool) (yes no : protocol).

Fixpoint bits (p : protocol) : nat :=
  match p with Answer _ => 0%nat | Alice _ l r => S (Nat.max (bits l) (bits r)) | Bob _ l r => S (Nat.max (bits l) (bits r)) end.
Fixpoint answer (p : protocol) (a b : list bool) : bool :=
  match p with
  | Answer says => says
  | Alice f l r => if f a then answer l a b else answer r a b
  | Bob g l r => if g b then answer l a b else answer r a b
  end.

(** The number of the leaf at which it ends. *)
Fixpoint leaf (p : protocol) (a b : list bool) : nat :=
  match p with
  | Answer _ => 0%nat
  | Alice f l r => if f a then leaf l a b else (2 ^ Nat.max (bits l) (bits r) + leaf r a b)%nat
  | Bob g l r => if g b then leaf l a b else (2 ^ Nat.max (bits l) (bits r) + leaf r a b)%nat
  end.

Lemma leaf_bound p a b : (leaf p a b < 2 ^ bits p)%nat.
Proof.
  induction p as [s|f l IHl r IHr|g l IHl r IHr]; simpl; [lia| |];
  assert (2 ^ bits l <= 2 ^ Nat.max (bits l) (bits r))%nat by (apply Nat.pow_le_mono_r; lia);
  assert (2 ^ bits r <= 2 ^ Nat.max (bits l) (bits r))%nat by (apply Nat.pow_le_mono_r; lia);
  [destruct (f a)|destruct (g b)]; lia.
Qed.

Lemma leaves_are_rectangles p a b a' b' : leaf p a b = leaf p a' b' -> answer p a b' = answer p a b /\ answer p a' b = answer p a b.
Proof.
  induction p as [s|f l IHl r IHr|g l IHl r IHr]; simpl; intro E; [now split| |];
  pose proof (leaf_bound l a b); pose proof (leaf_bound l a' b');
  assert (2 ^ bits l <= 2 ^ Nat.max (bits l) (bits r))%nat by (apply Nat.pow_le_mono_r; lia).
  - destruct (f a) eqn:F, (f a') eqn:F'; try lia; [now apply IHl|apply IHr; lia].
  - destruct (g b) eqn:G, (g b') eqn:G'; try lia; [now apply IHl|apply IHr; lia].
Qed.

Lemma meet_complement a : meet a (map negb a) = false.
Proof. induction a as [|x a IH]; simpl; [reflexivity|]. rewrite IH. now destruct x. Qed.

Lemma equal_sets a : forall a', List.length a = List.length a' -> meet a (map negb a') = false -> meet a' (map negb a) = false -> a = a'.
Proof.
  induction a as [|x a IH]; intros [|y a'] L M M'; simpl in *; try discriminate; [reflexivity|].
  injection L as L. apply Bool.orb_false_elim in M. apply Bool.orb_false_elim in M'. f_equal; [|now apply IH].
  destruct x, y; simpl in *; destruct M, M'; congruence.
Qed.

(** @statement Sparse averaging: Rank bound
    @clause bits that must be sent
    @kind clause
    @hypotheses any n; any deterministic protocol, in which Alice and Bob take turns as they like, that is right for all sets
    @formula it sends n bits or more for some pair of sets
    @note By the 2^n pairs of a set and its complement, no two of which end at one leaf; log2 of the rank says the same. *)
Theorem protocols_send_n_bits :
  forall n p, (forall a b, List.length a = n -> List.length b = n -> answer p a b = meet a b) -> (n <= bits p)%nat.
Proof.
  intros n p Right. destruct (sets_are_all n) as [L [D A]].
  assert (Len : forall a : list bool, List.length (map negb a) = List.length a) by (intro; apply map_length).
  assert (Inj : forall a a', List.length a = n -> List.length a' = n ->
    leaf p a (map negb a) = leaf p a' (map negb a') -> a = a').
  { intros a a' La La' E. destruct (leaves_are_rectangles p _ _ _ _ E) as [E1 E2].
    rewrite !Right in E1 by (rewrite ?Len; assumption). rewrite !Right in E2 by (rewrite ?Len; assumption).
    rewrite meet_complement in E1, E2. apply equal_sets; congruence. }
  apply (Nat.pow_le_mono_r_iff 2); [lia|].
  rewrite <- L, <- (map_length (fun a => leaf p a (map negb a)) (sets n)), <- (seq_length (2 ^ bits p) 0). apply NoDup_incl_length.
  - clear L. induction D as [|a l I D IH]; simpl; [constructor|]. constructor.
    + intro J. apply in_map_iff in J. destruct J as [b [E J]]. apply I.
      rewrite (Inj a b); [exact J|apply A; now left|apply A; now right|now symmetry].
    + apply IH. intros b J. apply A. now right.
  - intros k I. apply in_map_iff in I. destruct I as [a [<- I]]. apply in_seq. pose proof (leaf_bound p a (map negb a)). lia.
Qed.
